"""Landmarks that move to where they serve best, in one joint core; read `method` first."""
