package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// completionCmd prints what has a shell complete commands and flags.
type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (completionCmd) Help() string {
	return "Examples:\n\n    d=~/.local/share/bash-completion/completions; mkdir -p $d && till completion bash >$d/till\n" +
		"    mkdir -p ~/.zfunc && till completion zsh >~/.zfunc/_till   # with ~/.zfunc in fpath\n" +
		"    d=~/.config/fish/completions; mkdir -p $d && till completion fish >$d/till.fish"
}

// verb is a command as shells know it.
type verb struct {
	path string // as "till numbers drain"
	subs []word
	all  []word            // flags
	enum map[string]string // the values that a flag takes
}

type word struct{ text, help string }

// verbs are the commands and their flags, in the order of the program.
func verbs(n *kong.Node, path string) []verb {
	v := verb{path: path, enum: map[string]string{}}
	for at := n; at != nil; at = at.Parent {
		for _, f := range at.Flags {
			if f.Hidden {
				continue
			}
			v.all = append(v.all, word{"--" + f.Name, f.Help})
			if f.Enum != "" {
				v.enum["--"+f.Name] = strings.TrimSpace(strings.ReplaceAll(f.Enum, ",", " "))
			}
		}
	}
	var list []verb
	for _, c := range n.Children {
		if c.Type == kong.CommandNode && !c.Hidden {
			v.subs = append(v.subs, word{c.Name, c.Help})
			list = append(list, verbs(c, path+" "+c.Name)...)
		}
	}
	return append([]verb{v}, list...)
}

// Run prints the script.
func (c *completionCmd) Run(w *world) error {
	list := verbs(w.kong.Model.Node, "till")
	var b strings.Builder
	switch c.Shell {
	case "fish":
		fish(&b, list)
	case "zsh":
		zsh(&b, list)
	default:
		bash(&b, list)
	}
	_, err := io.WriteString(w.out, b.String())
	return err
}

func texts(list []word) string {
	out := make([]string, 0, len(list))
	for _, w := range list {
		out = append(out, w.text)
	}
	return strings.Join(out, " ")
}

// bash writes a function that finds the command that is typed so far and offers
// what may come next.
func bash(b *strings.Builder, list []verb) {
	b.WriteString("_till() {\n  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path=till words= i\n" +
		"  for ((i = 1; i < COMP_CWORD; i++)); do\n    case \"$path ${COMP_WORDS[i]}\" in\n")
	for _, v := range list[1:] {
		fmt.Fprintf(b, "      %q) path=%q ;;\n", v.path, v.path)
	}
	b.WriteString("    esac\n  done\n  case \"$path $prev\" in\n")
	for _, v := range list {
		for _, f := range slices.Sorted(maps.Keys(v.enum)) {
			fmt.Fprintf(b, "    %q) words=%q ;;\n", v.path+" "+f, v.enum[f])
		}
	}
	b.WriteString("    *)\n      case \"$path\" in\n")
	for _, v := range list {
		fmt.Fprintf(b, "        %q) words=%q; [[ $cur == -* ]] && words=%q ;;\n", v.path, texts(v.subs), texts(v.all))
	}
	b.WriteString("      esac ;;\n  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n" +
		"  [[ ${#COMPREPLY[@]} -gt 0 ]] || COMPREPLY=($(compgen -f -- \"$cur\"))\n}\ncomplete -F _till till\n")
}

// zsh writes a function that does the same with zsh's own words, so that it works
// the first time too, when the shell has only just read it. No variable of it is
// called path: that is PATH there.
func zsh(b *strings.Builder, list []verb) {
	quoted := strings.NewReplacer("'", `'\''`, "\n", " ")
	colons := strings.NewReplacer(`\`, `\\`, ":", `\:`)
	described := func(list []word) {
		for _, w := range list {
			fmt.Fprintf(b, " '%s:%s'", colons.Replace(w.text), quoted.Replace(colons.Replace(w.help)))
		}
	}
	b.WriteString("#compdef till\n_till() {\n  local cur=${words[CURRENT]} prev=${words[CURRENT-1]} verb=till i\n  local -a offer\n" +
		"  for ((i = 2; i < CURRENT; i++)); do\n    case \"$verb ${words[i]}\" in\n")
	for _, v := range list[1:] {
		fmt.Fprintf(b, "      %q) verb=%q ;;\n", v.path, v.path)
	}
	b.WriteString("    esac\n  done\n  case \"$verb $prev\" in\n")
	for _, v := range list {
		for _, f := range slices.Sorted(maps.Keys(v.enum)) {
			fmt.Fprintf(b, "    %q) offer=(%s) ;;\n", v.path+" "+f, v.enum[f])
		}
	}
	b.WriteString("    *)\n      case \"$verb\" in\n")
	for _, v := range list {
		fmt.Fprintf(b, "        %q)\n          if [[ $cur == -* ]]; then\n            offer=(", v.path)
		described(v.all)
		b.WriteString(")\n          else\n            offer=(")
		described(v.subs)
		b.WriteString(")\n          fi ;;\n")
	}
	b.WriteString("      esac ;;\n  esac\n  if (( $#offer )); then\n    _describe till offer\n  else\n    _files\n  fi\n}\n" +
		"if [[ $funcstack[1] == _till ]]; then\n  _till \"$@\"\nelse\n  compdef _till till\nfi\n")
}

// fish writes a line for each word, and when it is offered.
func fish(b *strings.Builder, list []verb) {
	b.WriteString("function __till_at\n  set -l path till\n  for word in (commandline -opc)[2..]\n    switch \"$path $word\"\n      case")
	for _, v := range list[1:] {
		fmt.Fprintf(b, " '%s'", v.path)
	}
	b.WriteString("\n        set path \"$path $word\"\n    end\n  end\n  test \"$path\" = \"$argv[1]\"\nend\n")
	plain := strings.NewReplacer("\\", "\\\\", "'", "\\'", "\n", " ")
	for _, v := range list {
		for _, s := range v.subs {
			fmt.Fprintf(b, "complete -c till -f -n \"__till_at '%s'\" -a '%s' -d '%s'\n", v.path, s.text, plain.Replace(s.help))
		}
		for _, f := range v.all {
			line := fmt.Sprintf("complete -c till -n \"__till_at '%s'\" -l '%s' -d '%s'", v.path, strings.TrimPrefix(f.text, "--"), plain.Replace(f.help))
			if values := v.enum[f.text]; values != "" {
				line += " -x -a '" + values + "'"
			}
			b.WriteString(line + "\n")
		}
	}
}
