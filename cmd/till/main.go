// Command till runs Till: a checkout inside a WhatsApp chat.
//
// This package wires: it is the one place where the rules, the store, the API,
// the bot, WhatsApp, the bank and webhooks meet. It decides nothing of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"till/config"
	"till/flow"
)

// The exit codes: everything went well, it failed, it was asked for wrongly, or
// it is not allowed, however it is asked for.
const (
	exitOK      = 0
	exitFailed  = 1
	exitUsage   = 2
	exitRefused = 3
)

// commands is the table of commands: one struct, one file each.
type commands struct {
	Dev   devCmd   `cmd:"" help:"Run everything on this machine, with nothing real: API, bank, WhatsApp network and phones."`
	Serve serveCmd `cmd:"" help:"Run Till for a bank and a WhatsApp network that run elsewhere."`
	Pair  pairCmd  `cmd:"" help:"Link the bot to a WhatsApp account, by QR code or by an eight-letter code."`
	developerCmds

	Replay    replayCmd    `cmd:"" help:"Tell what happened in a conversation, line by line, and decide it again."`
	Desk      deskCmd      `cmd:"" help:"Answer payers who asked for a person: list, claim, reply, release."`
	Network   networkCmd   `cmd:"" help:"Run the local WhatsApp network as a process of its own."`
	Bank      bankCmd      `cmd:"" help:"Run the sandbox bank as a process of its own."`
	Merchants merchantsCmd `cmd:"" help:"See who uses Till, and decide who may take real money."`
	Payer     payerCmd     `cmd:"" help:"Export all that is kept of a payer, or forget who they are."`
	Numbers   numbersCmd   `cmd:"" help:"See our WhatsApp numbers; drain, kill or resume one."`
	Methods   methodsCmd   `cmd:"" help:"Switch a method to pay off, or on again."`
	Switches  switchesCmd  `cmd:"" help:"Tell what operators switched, who and why."`
	Ledger    ledgerCmd    `cmd:"" help:"Prove the ledger, or show what lies in its accounts."`
	Reconcile reconcileCmd `cmd:"" help:"Compare a day of the bank's statement with the ledger and with what merchants were told."`
	Doctor    doctorCmd    `cmd:"" help:"Look for what is wrong with the machine, the data and what they rest on, and say what mends it."`
	operatorCmds

	Sim     simCmd     `cmd:"" help:"Simulate weeks of the whole service, with everything going wrong, and judge them."`
	Config  configCmd  `cmd:"" help:"Show every setting, its value and where that comes from."`
	Version versionCmd `cmd:"" help:"Show the version."`
}

// world is what a command may touch of the process it runs in.
type world struct {
	ctx      context.Context //nolint:containedctx // kong hands its methods this one value
	out, err io.Writer
	kong     *kong.Context
}

func main() {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // by nohup: the terminal that closes is none of ours
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program, apart from the process it runs in.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	var cmds commands
	exited := -1
	read, files := tomlFile, []string{settingsFile}
	shut := shutFile()
	if shut != nil { // whoever opens it may wait for ever
		files = nil
	}
	if len(args) > 0 && args[0] == "doctor" { // it tells what is wrong with the file
		read = lenient
	} else if shut != nil {
		_, _ = fmt.Fprintf(errs, "till: %s cannot be read: %v: %s\n", settingsFile, shut, shutFix(shut))
		return exitFailed
	}
	parser, err := kong.New(&cmds, append(plantedCmds(), kong.Name("till"), kong.UsageOnError(),
		kong.Description("Till collects payments inside a WhatsApp chat.\n\nStart with:  till dev"),
		kong.Writers(out, errs), kong.Exit(func(code int) { exited = code }),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(typedDuration)), kong.TypeMapper(reflect.TypeFor[time.Time](), kong.MapperFunc(typedTime)),
		kong.KindMapper(reflect.Int, kong.MapperFunc(typedNumber)), kong.KindMapper(reflect.Int64, kong.MapperFunc(typedNumber)), kong.WithAfterApply(leftEmpty),
		kong.Configuration(read, files...), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))...)
	if err != nil {
		_, _ = fmt.Fprintln(errs, "till:", err)
		return exitFailed
	}
	if slices.ContainsFunc(args, flow.HoldsCard) { // it would stand in a reason, a log or the shell's history of it
		_, _ = fmt.Fprintln(errs, "till: a card number stands in an argument. Till takes none; nothing was done.")
		return exitUsage
	}
	parsed, err := parser.Parse(asMeant(args))
	if exited >= 0 {
		return exited // --help was answered
	}
	if err != nil {
		_, _ = fmt.Fprintf(errs, "till: %v%s\nSee: till%s --help\n", err, meant(err), asked(err))
		return exitUsage
	}
	if err = mayRun(parsed.Command(), errs); err == nil {
		err = parsed.Run(&world{ctx: ctx, out: out, err: errs, kong: parsed})
	}
	if err != nil {
		if code, told := errors.AsType[codeError](err); told {
			return int(code)
		}
		text := strings.TrimSpace(err.Error())
		if ctx.Err() != nil {
			text = strings.ReplaceAll(text, context.Canceled.Error(), "stopped by a signal before it was done")
		}
		for line := range strings.SplitSeq(text, "\n") {
			_, _ = fmt.Fprintln(errs, "till:", plain(line))
		}
		return codeOf(err)
	}
	return exitOK
}

// asMeant is what was typed, with what other programs are asked by for their help and
// their version as this one is.
func asMeant(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	case args[0] == "--version":
		return append([]string{"version"}, args[1:]...)
	}
	return args
}

// typedDuration reads how long something lasts. Who writes days, or words, is shown
// what is wanted.
func typedDuration(at *kong.DecodeContext, into reflect.Value) error {
	var text string
	if err := at.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is no duration: 90s, 30m and 48h are", text)
	}
	into.SetInt(int64(d))
	return nil
}

// typedTime reads a moment. kong would show how Go writes the form of one.
func typedTime(at *kong.DecodeContext, into reflect.Value) error {
	var text string
	if err := at.Scan.PopValueInto("time", &text); err != nil {
		return err
	}
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return fmt.Errorf("%q is no time: 2026-11-20T08:00:00Z is", text)
	}
	into.Set(reflect.ValueOf(moment))
	return nil
}

// typedNumber reads a number. kong would speak of its bits.
func typedNumber(at *kong.DecodeContext, into reflect.Value) error {
	var text string
	if err := at.Scan.PopValueInto("number", &text); err != nil {
		return err
	}
	n, err := strconv.ParseInt(text, 0, into.Type().Bits())
	if err != nil {
		return fmt.Errorf("%q is no whole number, or too large a one", text)
	}
	into.SetInt(n)
	return nil
}

// leftEmpty refuses a flag that is given without a value, as the API does a filter:
// one that comes from a variable which nobody has set would list everything. A
// setting may be empty, and says what that means.
func leftEmpty(c *kong.Context) error {
	for _, given := range c.Path {
		flag := given.Flag
		if flag == nil || given.Resolved || len(flag.Envs) > 0 {
			continue
		}
		if kind := flag.Target.Kind(); (kind == reflect.String || kind == reflect.Slice || kind == reflect.Map) && flag.Target.Len() == 0 {
			return fmt.Errorf("--%s is left empty: leave it out where it is not meant", flag.Name)
		}
	}
	return nil
}

// codeOf is the exit code of a command that failed.
func codeOf(err error) int {
	if bad := (usageError{}); errors.As(err, &bad) {
		return exitUsage
	}
	if no := (refusedError{}); errors.As(err, &no) {
		return exitRefused
	}
	if told, ok := errors.AsType[*apiError](err); ok && told.forbidden() {
		return exitRefused
	}
	return exitFailed
}

// asked is the command that a fault of the command line belongs to.
func asked(err error) string {
	var bad *kong.ParseError
	if !errors.As(err, &bad) || bad.Context.Selected() == nil {
		return ""
	}
	return strings.TrimPrefix(bad.Context.Selected().FullPath(), "till")
}

// unexpected is how kong begins what it says of a word that nothing takes.
const unexpected = "unexpected argument "

// meant is the verb that a wrong one is nearest to, as the end of a fault's
// sentence, where kong names none: it knows no verbs beside one that is done when
// none is named.
func meant(err error) string {
	var bad *kong.ParseError
	word, ok := strings.CutPrefix(err.Error(), unexpected)
	if !ok || strings.Contains(word, " ") || !errors.As(err, &bad) || bad.Context.Selected() == nil {
		return ""
	}
	var verbs []string
	for _, verb := range bad.Context.Selected().Parent.Children {
		verbs = append(verbs, verb.Name)
	}
	if best := nearestOf(word, verbs); best != "" {
		return fmt.Sprintf(", did you mean %q?", best)
	}
	return ""
}

// codeError ends the program with a code of its own, when all was said already.
type codeError int

// Error is not shown.
func (c codeError) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// usageError is a fault of how the program was called.
type usageError struct{ error }

// logger writes for operators, to stderr: words on a terminal are for them too.
func logger(w io.Writer, s config.Settings) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.LogLevel)); err != nil {
		level = slog.LevelWarn
	}
	return slog.New(traced{slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})})
}
