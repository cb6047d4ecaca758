"""What do lists of others say now? Read on request, never silently, and compared with what is."""
