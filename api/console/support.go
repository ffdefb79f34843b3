package console

// supportPages are what supporters look at: sessions, what became of money, and who waits.
func supportPages() []Page { return nil }
