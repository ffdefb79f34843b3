package console

// operatorPages are what operators handle: numbers, switches, KYC and the audit log.
func operatorPages() []Page { return nil }
