"""What users do with landmarks: regression and classification."""
