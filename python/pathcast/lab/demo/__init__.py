"""The demo: two unlike lines with others' traffic; every choice is forecast, then sent, and a line is changed."""
