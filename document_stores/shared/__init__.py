"""What several document stores use."""
