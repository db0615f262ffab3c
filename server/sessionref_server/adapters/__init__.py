"""What the use cases need from the outside world, one folder per port."""
