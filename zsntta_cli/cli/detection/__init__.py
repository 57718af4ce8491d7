"""`zsntta detect`: its options, where its rows go, what corrections say."""
