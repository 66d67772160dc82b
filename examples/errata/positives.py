"""How many records of Adult are positive.

Run: python examples/errata/positives.py
"""

import privsolve as ps


def main() -> None:
    adult = ps.datasets.adult()
    for name, part in (("both files", adult), ("training file", adult[adult["split"] == "train"])):
        positive = (part["income"] == ">50K").sum()
        print(f"{name}: {len(part):,} records, {positive:,} positive")


if __name__ == "__main__":
    main()
