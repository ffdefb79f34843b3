package main

// developerCmds are the commands of whoever builds a shop on Till.
type developerCmds struct {
	Try      tryCmd      `cmd:"" help:"Go the whole way of one payment: session, chat, money, receipt, webhook."`
	Listen   listenCmd   `cmd:"" help:"Bring webhooks to a program on this machine, and show them."`
	Trigger  triggerCmd  `cmd:"" help:"Make an event really happen."`
	Sessions sessionsCmd `cmd:"" help:"Create, list, show, watch, replay, export, cancel or expire sessions."`
	Pay      payCmd      `cmd:"" help:"Play the payer of a session: pay it, wrongly too."`
	Events   eventsCmd   `cmd:"" help:"List, show or send events again."`
	Webhooks webhooksCmd `cmd:"" help:"List, add, test or remove webhook endpoints; rotate their secrets."`
	Projects projectsCmd `cmd:"" help:"List or create projects."`
	Keys     keysCmd     `cmd:"" help:"List, create, rotate or revoke a project's keys."`
	Clock    clockCmd    `cmd:"" help:"Move the clock of the test environment, or read it."`
	Chaos    chaosCmd    `cmd:"" help:"Have the sandbox bank behave badly."`
}
