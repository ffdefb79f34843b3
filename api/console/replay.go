package console

// replayPages are conversations, decided again before one's eyes.
func replayPages() []Page { return nil }
