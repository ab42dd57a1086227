"""Lines with names: what the user says of them (`config`, `edit`), what each carried (`carried`), how its packets leave
by it (`routes`)."""
