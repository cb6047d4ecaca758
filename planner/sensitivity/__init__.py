"""What matters? Elasticities of an answer, the next switch of its choice, break-even points."""
