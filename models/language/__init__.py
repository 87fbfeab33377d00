"""Hand-written English: every rule that recognises a wording, by what it recognises."""
