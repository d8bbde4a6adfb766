"""Training, validation and test parts: drawn (`split`), of other kinds (`kinds`), brought by the user (`given`)."""
