"""Compare two scenarios change by change, and check a plan against its promises."""
