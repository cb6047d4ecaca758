"""The font of the HTML pages, made anew: letters and signs that formulas are set in.

`python -m tests.scripts.mathematics_font latinmodern-math.otf` writes
it; it needs fonttools and brotli.
"""

import sys
from pathlib import Path

FONT = Path(__file__).parents[2] / "formulas/export/token-planner-math.woff2"
NAME = "Token Planner Math"
SIGNS = "ϑϕϖϰϱϵ−∞≈⋅≤≥≠⌈⌉⌊⌋√∑∏∂→′⋆∘†∗‖…⟨⟩≪≫∝∼·×±¯ˆ˜˙ℬℰℱℋℐℒℳℛℓℎ\u00a0\u0302\u0303\u0304\u0307"
BLOCKS = ((0x20, 0x7F), (0x391, 0x3AA), (0x3B1, 0x3CA), (0x1D434, 0x1D468), (0x1D49C, 0x1D4B6),
          (0x1D6E2, 0x1D71C))  # fmt: skip


def main(source: str) -> None:
    """Write the subset, renamed as the licence of the original asks."""
    from fontTools import subset

    options = subset.Options()
    options.flavor = "woff2"
    options.layout_features = []
    options.drop_tables += ["GPOS", "GSUB", "GDEF", "FFTM"]
    options.name_IDs = [0, 1, 2, 3, 4, 5, 6, 13, 14]
    options.hinting = False
    font = subset.load_font(source, options)
    letters = {*map(ord, SIGNS), *(code for first, end in BLOCKS for code in range(first, end))}
    maker = subset.Subsetter(options)
    maker.populate(unicodes=letters)
    maker.subset(font)
    plain = NAME.replace(" ", "")
    names = {1: NAME, 3: f"{NAME}, a subset of Latin Modern Math 1.959", 4: NAME, 6: plain}
    for record in font["name"].names:
        record.string = names.get(record.nameID, record.toUnicode())
    table = font["CFF "].cff
    table.fontNames = [plain]
    table.topDictIndex[0].FullName = table.topDictIndex[0].FamilyName = NAME
    subset.save_font(font, str(FONT), options)


if __name__ == "__main__":
    main(str(Path(sys.argv[1])))
