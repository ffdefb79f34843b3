package api

import (
	"embed"
	"fmt"

	"till/api/console"
)

// snippetFiles are whole programs, one folder a language. They are shown as
// they are, and tests run them.
//
//go:embed snippets
var snippetFiles embed.FS

// task is one thing to do, in every language.
type task struct {
	Slug  string
	Title string
	Text  string
	Files []snippet
}

// snippet is one program.
type snippet struct {
	Language string
	Run      string
	Code     string
}

// programs are the snippets as the console shows them.
func (p *pages) programs() []console.Task {
	out := make([]console.Task, 0, len(p.tasks))
	for _, t := range p.tasks {
		one := console.Task{Slug: t.Slug, Title: t.Title, Text: t.Text}
		for _, f := range t.Files {
			one.Programs = append(one.Programs, console.Program(f))
		}
		out = append(out, one)
	}
	return out
}

// verifyText is what is said of programs that verify a webhook, by which key.
func verifyText(key, whom string) string {
	return "Reads a delivery's body from standard input and its headers from the environment, as webhook_id, webhook_timestamp and " +
		"webhook_signature, with the endpoint's " + key + ". Ends with 1 where the signature does not hold." + whom
}

// readSnippets reads the programs, in the order in which they are shown.
func readSnippets() ([]task, error) {
	tasks := []task{
		{Slug: "create-session", Title: "Open a session", Text: "Asks for ₦5,000.00. No bank is called yet."},
		{Slug: "create-charge", Title: "Create a charge", Text: "Opens a session in WhatsApp and makes its account number, in one call."},
		{Slug: "pay-bank-transfer", Title: "Pay by bank transfer", Text: "Takes a session's id and makes the account number to pay into."},
		{Slug: "verify-webhook", Title: "Verify a webhook", Text: verifyText("secret in TILL_WEBHOOK_SECRET", "")},
		{
			Slug: "verify-webhook-v1a", Title: "Verify a webhook that is signed by v1a",
			Text: verifyText("publicKey in TILL_WEBHOOK_PUBLIC_KEY", " For endpoints that were made with or turned to the signature v1a, which have no secret."),
		},
	}
	languages := []struct{ name, folder, ext, run string }{
		{"cURL", "curl", "sh", "sh %s"},
		{"Node", "node", "mjs", "node %s"},
		{"PHP", "php", "php", "php %s"},
		{"Python", "python", "py", "python3 %s"},
		{"Go", "go", "go", "go run %s"},
	}
	for i := range tasks {
		for _, l := range languages {
			name := tasks[i].Slug + "." + l.ext
			code, err := snippetFiles.ReadFile("snippets/" + l.folder + "/" + name)
			if err != nil {
				return nil, fmt.Errorf("read the snippets: %w", err)
			}
			tasks[i].Files = append(tasks[i].Files, snippet{Language: l.name, Run: fmt.Sprintf(l.run, name), Code: string(code)})
		}
	}
	return tasks, nil
}
