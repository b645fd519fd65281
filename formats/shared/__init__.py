"""Code that several formats share: codecs and losses of pandas, and engines that support more than one format."""
