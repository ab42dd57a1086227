"""placeholder"""
def demo() -> None:
    """Later."""
