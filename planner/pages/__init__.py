"""How do I ask from a browser, a program or an agent? The command's documents, by other doors."""
