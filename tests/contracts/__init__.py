"""What every adapter must hold, for ours and for third parties."""
