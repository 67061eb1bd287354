// Surrogate derivatives h(x) of the spike, x = u - theta; formulas and sources in docs/training.md. The window is
// applied by the caller. Included inside a namespace, once per instruction set, like models/lif.inl.hpp; needs also
// abs_of, max_of and square-free arithmetic only.

template <class Number>
struct SurrogateConstants {
  Number slope;      // beta of superspike and quadratic; pi a / 2 of arctan
  Number amplitude;  // gamma of the triangle; a / 2 of arctan
  Number one;
};

/// 1 / (beta |x| + 1)^2 (Zenke and Ganguli 2018)
struct SuperSpike {
  template <class Number>
  static Number derivative(const SurrogateConstants<Number>& c, Number x) {
    const Number denominator = mul_add(c.slope, abs_of(x), c.one);
    // Two divisions instead of a square: the square overflows for |x| of 1e18 and more, and 1/inf must stay 0.
    const Number inverse = c.one / denominator;
    return inverse * inverse;
  }
};

/// gamma max(0, 1 - |x|) (Bellec et al. 2018)
struct Triangle {
  template <class Number>
  static Number derivative(const SurrogateConstants<Number>& c, Number x) {
    return c.amplitude * max_of(c.one - abs_of(x), c.one - c.one);
  }
};

/// 1 for |x| <= 1/2; its support is part of the window (sparch)
struct Box {
  template <class Number>
  static Number derivative(const SurrogateConstants<Number>& c, Number) {
    return c.one;
  }
};

/// max(0, 1 - (beta x)^2)
struct Quadratic {
  template <class Number>
  static Number derivative(const SurrogateConstants<Number>& c, Number x) {
    const Number scaled = c.slope * x;
    return max_of(c.one - scaled * scaled, c.one - c.one);
  }
};

/// (a/2) / (1 + (pi a x / 2)^2) (Fang et al. 2021)
struct Arctan {
  template <class Number>
  static Number derivative(const SurrogateConstants<Number>& c, Number x) {
    const Number scaled = c.slope * x;
    return c.amplitude / mul_add(scaled, scaled, c.one);
  }
};
