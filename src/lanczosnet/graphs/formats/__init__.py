"""Files that users bring: tables, PyG objects, archives and graph folders. Nothing is unpickled freely."""
