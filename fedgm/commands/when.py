"""When FedGM helps, from stored runs."""

from pathlib import Path

import click


@click.command()
@click.argument("results", type=click.Path(path_type=Path, exists=True), default="docs/results/small")
@click.option("--page", type=click.Path(path_type=Path), default="docs/when.md", show_default=True,
              help="The page whose tables are replaced.")  # fmt: skip
def command(results: Path, page: Path) -> None:
    """Where FedGM beats FedAvg's best over eta and delay; RESULTS holds runs or stored results of the grids.

    \b
    fedgm when                                   # redraws docs/when.md from docs/results/small
    fedgm when outputs --page mine/when.md       # from runs of your own
    """
    from fedgm.errors import FedGMError
    from fedgm.figures import when as pictures
    from fedgm.figures.style import save
    from fedgm.study import when
    from fedgm.study.evidence import stored_records
    from fedgm.study.page import replace_between

    records = stored_records(results)
    found = when.tried(records)
    if not found:
        raise FedGMError(f"{results}: no run of the grids on seed 0. Try fedgm sweep sweeps/fedgm_grid.yaml")
    first = next(run for run in records if run.facts["name"] in when.EXPERIMENTS)
    scale = f"Profile {first.facts['profile']}, {first.facts['rounds']} rounds, seed 0."
    gains = when.map_rows(found)
    page.parent.mkdir(parents=True, exist_ok=True)
    links: dict[str, str] = {}
    if any(gains.values()):
        early = {setting.name: when.stopped(points) for setting, points in found.items()}
        about = "Means of the last 10 evaluations; a divergent run counts with chance."
        grey = "Grey: not run, or stopped early by successive halving."
        figure = pictures.draw_gains(gains, early, f"{scale} {about} {grey}")
        links["Gain over FedAvg by eta and delay"] = save(figure, page.with_name("when_gain.png")).name
    ranges = {
        f"{setting.name}: {_name(*rule)}": pictures.Etas(
            [p.eta for p in points if (p.algorithm, p.beta, p.nu) == rule and not p.paused],
            etas,
            [p.eta for p in points if (p.algorithm, p.beta, p.nu) == rule and p.paused],
        )
        for setting, points in found.items()
        for rule, etas in when.usable(points).items()
    }
    about = f"Filled: within {when.NEAR:g} points of the rule's own best. Rings: run, not usable."
    about = f"{scale} {about} Dots: stopped early."
    figure = pictures.draw_ranges(ranges, about)
    links["Usable server rates"] = save(figure, page.with_name("when_ranges.png")).name
    body = when.markdown(found, links, scale, first.board.judge)
    replace_between(page, "fedgm when", body, "When does FedGM help?")
    for path in (page, *(page.with_name(name) for name in links.values())):
        click.echo(path)


def _name(algorithm: str, beta: float, nu: float) -> str:
    return "FedAvg" if algorithm == "fedavg" else (
        f"FedAvgM {beta:g}" if algorithm == "fedavgm" else f"FedGM {beta:g}, {nu:g}"
    )  # fmt: skip
