"""What was measured, forecast and sent, of any world: in a SQLite file, or in PostgreSQL by URL. See docs/history.md.

It knows nothing of worlds and forecasts: what they found comes and goes as plain records.
"""
