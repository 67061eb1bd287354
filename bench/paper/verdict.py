"""Sentences about what came out, true whatever came out."""

from results import REACHED, SLOWEST, Comparison

NUMBERS = "none one two three four five six seven eight nine ten".split()


def percent(fraction, digits=1):
    return f"{100 * fraction:.{digits}f} %"


def joined(words):
    words = list(words)
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def in_words(number):
    return NUMBERS[number] if number < len(NUMBERS) else str(number)


def count(number, noun):
    return f"{in_words(number)} {noun}{'' if number == 1 else 's'}"


def activity_of(result):
    return joined(percent(value, 2) for value in result.by_layer("activity").values())


def accuracy_sentence(comparison):
    result, full = comparison.result, comparison.full
    reached = f"end at {percent(result.accuracy)} in the mean of {count(len(result.finals), 'seed')}"
    if not comparison.has_spread:
        return f"{reached}; the full surrogate, of one seed and so without a spread, at {percent(full.accuracy)}"
    spread = f"{percent(comparison.lowest)} to {percent(comparison.highest)}"
    if result.accuracy < comparison.lowest:
        below = 100 * (comparison.lowest - result.accuracy)
        return f"{reached}, {below:.1f} points below the lowest seed of the full surrogate ({spread})"
    if result.accuracy > comparison.highest:
        return f"{reached}, above every seed of the full surrogate ({spread})"
    return f"{reached}, within the spread of the full surrogate's seeds ({spread})"


def pace_sentence(comparison):
    target = f"{percent(comparison.target)}, {percent(REACHED, 0)} of the full surrogate's final accuracy,"
    if comparison.full_epochs is None:
        return f"not every run of the full surrogate had {target} after an epoch, so the pace can't be compared"
    never = comparison.result.epochs_until(comparison.target).count(None)
    if never:
        runs = len(comparison.result.finals)
        which = "their one run" if runs == 1 else f"{in_words(never)} of {count(runs, 'run')}"
        return f"{which} never had {target} after an epoch"
    bound = f"{'no more' if comparison.keeps_pace else 'more'} than {SLOWEST:g} times"
    return (
        f"they have {target} after {comparison.epochs:.1f} epochs in the mean, the full surrogate after "
        f"{comparison.full_epochs:.1f}: {comparison.slower:.2f} times as many, {bound}"
    )


def failures_sentence(result):
    seeds = joined(str(seed) for seed in result.failed)
    words = next(iter(result.failed.values()))
    runs = count(len(result.failed), "run")
    return f"{result.variant.title.capitalize()}: the numbers of {runs} failed (seed {seeds}): {words}."


def true_length(comparison):
    return f"True-length lists {accuracy_sentence(comparison)}; {pace_sentence(comparison)}."


def harm(comparison):
    """What a fixed list costs beside the full surrogate, as the end of a sentence; empty if nothing."""
    costs = []
    if comparison.result.failed:
        costs.append(f"{count(len(comparison.result.failed), 'run')} failed")
    if comparison.has_spread and comparison.result.accuracy < comparison.lowest:
        lost = 100 * (comparison.full.accuracy - comparison.result.accuracy)
        costs.append(f"{lost:.1f} points of accuracy in the mean")
    if comparison.full_epochs is not None and comparison.epochs is None:
        costs.append("not every run gets to 95 % of the full surrogate's accuracy")
    elif comparison.slower is not None and not comparison.keeps_pace:
        costs.append(f"{comparison.slower:.1f} times as many epochs")
    return joined(costs) if costs else ""


def fixed_lists(comparisons):
    """`comparisons`: of the variants with fixed lists, longest list first."""
    if not comparisons:
        return "Fixed lists were not trained to the end."
    unharmed = [c for c in comparisons if not harm(c)]
    sentences = []
    if unharmed:
        lists = joined(f"{c.result.variant.title} (hidden activity {activity_of(c.result)})" for c in unharmed)
        sentences.append(f"By the same measures nothing is lost with {lists}.")
    sentences += [
        f"With {c.result.variant.title}, at an activity of {activity_of(c.result)}, it suffers: {harm(c)}."
        for c in comparisons
        if harm(c)
    ]
    return " ".join(sentences)


def compare(results, task, variant):
    """None where one of the two is not there."""
    full, result = results.get((task, "full")), results.get((task, variant))
    if full is None or result is None or not full.complete or not result.complete:
        return None
    return Comparison(result, full)


def of_set(results, task):
    """The paragraph of one set."""
    failed = [result for (name, _), result in results.items() if name == task.name and result.failed]
    return " ".join([comparisons_of_set(results, task), *map(failures_sentence, failed)])


def comparisons_of_set(results, task):
    full = results.get((task.name, "full"))
    if full is None or not full.complete:
        return "The full surrogate was not trained to the end, so there is nothing to compare with."
    parts = []
    if full.accuracy < 2 / task.classes():
        parts.append(
            f"The full surrogate itself is near chance ({percent(full.accuracy)} of {task.classes()} classes): "
            "what follows says little."
        )
    main = compare(results, task.name, "true-length")
    parts.append(true_length(main) if main else "True-length lists were not trained to the end.")
    others = [
        compare(results, task.name, variant)
        for name, variant in results
        if name == task.name and results[name, variant].variant.share is not None
    ]
    parts.append(fixed_lists([c for c in others if c]))
    return " ".join(parts)


def overall(results, tasks):
    """Whether the claim holds, in one sentence for each answer that occurs."""
    holds, fails, unknown = [], [], []
    for task in tasks:
        comparison = compare(results, task.name, "true-length")
        if comparison is None or not comparison.has_spread or comparison.full_epochs is None:
            unknown.append(task.title)
        elif comparison.keeps_accuracy and comparison.keeps_pace:
            holds.append(task.title)
        else:
            lost = [
                word
                for word, kept in (("final accuracy", comparison.keeps_accuracy), ("pace", comparison.keeps_pace))
                if not kept
            ]
            fails.append(f"{task.title} ({joined(lost)})")
    sentences = []
    if holds:
        sentences.append(f"The claim holds on {joined(holds)}.")
    if fails:
        sentences.append(f"It does not hold on {joined(fails)}.")
    if unknown:
        sentences.append(f"On {joined(unknown)} these runs can't tell.")
    return " ".join(sentences)
