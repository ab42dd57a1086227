"""The main job in small (Hamazaki, Abe, Kato): probe two paths, learn, predict, send, compare."""
