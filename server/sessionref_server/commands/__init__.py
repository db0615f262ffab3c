"""The commands of the command line, one module each. They talk to a server through the Python client, as any host does."""
