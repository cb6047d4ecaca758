"""Mathematics typeset as LaTeX, MathML, Typst and text."""
