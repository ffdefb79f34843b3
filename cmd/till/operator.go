package main

// operatorCmds are the commands of whoever runs Till.
type operatorCmds struct {
	People     peopleCmd     `cmd:"" help:"Say who may log in to the console: operators, and people of an account."`
	Console    consoleCmd    `cmd:"" help:"Show where the console is, and how its first operator is made."`
	Backup     backupCmd     `cmd:"" help:"Write everything that is kept into one file, beside a server that runs."`
	Restore    restoreCmd    `cmd:"" help:"Check a backup and put it in place of what is kept."`
	Verify     verifyCmd     `cmd:"" help:"Prove all that is kept, or a backup: every page, every ledger, every row that belongs to another."`
	Migrate    migrateCmd    `cmd:"" help:"Bring the databases to what this program knows, with a copy of each kept before."`
	Health     healthCmd     `cmd:"" help:"Ask the server that runs here whether it can work."`
	Logs       logsCmd       `cmd:"" help:"Show what the server logged; follow it."`
	Completion completionCmd `cmd:"" help:"Print what has a shell complete till's commands and flags."`
}
