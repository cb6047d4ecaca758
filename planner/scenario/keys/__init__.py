"""Types of scenario keys shared by several problem kinds."""
