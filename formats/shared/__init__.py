"""What several formats use: codecs and losses of pandas, the engines that read and write more than one format."""
