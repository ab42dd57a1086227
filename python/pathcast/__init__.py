"""pathcast: measures paths, predicts Multipath TCP throughput, chooses the paths, and sends."""
