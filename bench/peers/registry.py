"""The peers by name: the module that builds each one, the packages that it takes, and its precision.

A peer's module has `build(case, variant, precision)`, which returns a `Trainer`: `prepare(spikes, labels)` turns numpy
arrays into the framework's own (not timed), `step(batch)` does one whole training step and returns its loss as a float.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Peer:
    module: str
    variant: str
    packages: tuple
    precision: str = "fp32"
    recurrent: bool = True  # has recurrent layers


PEERS = {
    "torch-steps": Peer("peer_torch", "steps", ("torch",)),
    "torch-layers": Peer("peer_torch", "layers", ("torch",)),
    "torch-compile": Peer("peer_torch", "compile", ("torch",)),
    "torch-steps-bf16": Peer("peer_torch", "steps", ("torch",), "bf16"),
    "torch-layers-bf16": Peer("peer_torch", "layers", ("torch",), "bf16"),
    "torch-compile-bf16": Peer("peer_torch", "compile", ("torch",), "bf16"),
    "snntorch": Peer("peer_snntorch", "", ("torch", "snntorch")),
    "spikingjelly": Peer("peer_spikingjelly", "", ("torch", "spikingjelly"), recurrent=False),
    "norse": Peer("peer_norse", "", ("torch", "norse"), recurrent=False),
    "jax-steps": Peer("peer_jax", "steps", ("jax", "jaxlib", "optax")),
    "jax-layers": Peer("peer_jax", "layers", ("jax", "jaxlib", "optax")),
    "spyx": Peer("peer_spyx", "", ("jax", "jaxlib", "optax", "flax", "spyx")),
    "brainevent": Peer("peer_brainevent", "", ("jax", "jaxlib", "optax", "brainevent", "numba"), recurrent=False),
}
