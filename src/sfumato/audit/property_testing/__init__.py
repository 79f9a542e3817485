"""The thesis' testers of privacy, certificates by them, and limits of any tester."""
