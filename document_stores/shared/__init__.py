"""Code that several document stores share."""
