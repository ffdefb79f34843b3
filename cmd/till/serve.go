package main

import (
	"errors"

	"till/config"
)

// serveCmd runs Till for outsides that run elsewhere.
type serveCmd struct{ config.Settings }

func (serveCmd) Help() string {
	return "Example:\n\n    TILL_BANK_URL=http://127.0.0.1:8091 TILL_WHATSAPP_NETWORK=whatsapp till serve"
}

// Run runs until it is told to stop.
func (c *serveCmd) Run(w *world) error {
	var faults []error
	if c.BankURL == "" {
		faults = append(faults, errors.New("till serve needs a bank: set --bank-url (till bank runs a sandbox), or use till dev"))
	}
	if c.InsideWhatsApp() {
		faults = append(faults, errors.New("till serve needs a network: set --whatsapp-network=whatsapp, or --whatsapp-dial and --whatsapp-root-key, or use till dev"))
	}
	if c.DatabaseURL != "" && c.SecretsKey == "" {
		faults = append(faults, errors.New("till serve needs a key to seal secrets with, for a database that others reach too: "+
			"set TILL_SECRETS_KEY to what  openssl rand -hex 32  prints, the same for every process, and keep a copy elsewhere"))
	}
	// A proxy in front that has a certificate is reached by https, and so is what stands here.
	if instead, open := c.PublicURL.InTheClear(); open {
		faults = append(faults, errors.New("till serve needs a --public-url with TLS: by "+c.PublicURL.String()+" keys, passwords and payers' names would pass in the clear "+
			"(put a proxy with a certificate in front, and give its address, as "+instead+")"))
	}
	if err := errors.Join(faults...); err != nil {
		return usageError{err}
	}
	return launch(w, c.Settings, false)
}
