package console

// developerPages are what merchants' developers handle: keys, webhooks and the log of requests.
func developerPages() []Page { return nil }
