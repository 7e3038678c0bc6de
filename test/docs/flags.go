package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Program knows the commands and flags of quaymaster, as docs/cli.md has them, which is
// made of the commands themselves.
type Program struct {
	flags map[string]map[string]bool // by command, as in "bundle create"
}

var (
	written = regexp.MustCompile(`(?m)^\s+(?:(-\w), )?(?:    )?(--[a-z][a-z0-9-]*)`)
	// called finds where the program is called: at the beginning, behind a prompt or
	// in the middle of a pipe, and not as a part of another word.
	called  = regexp.MustCompile("(?m)(?:^|[|;&(`!]|\\$ |&& |do |then |- run: |run: |- |script: )\\s*(?:sudo )?(?:\\./)?(?:bin/)?quaymaster((?:[ \t]+[^\\n]*)?)$")
	variant = regexp.MustCompile(`^-{1,2}[A-Za-z]`)
)

// NewProgram reads the page of the command line.
func NewProgram(page *Page) (*Program, error) {
	p := &Program{flags: map[string]map[string]bool{}}
	for _, section := range strings.Split(string(page.source), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		name := strings.TrimSpace(strings.TrimPrefix(title, "quaymaster"))
		known := map[string]bool{}
		for _, flag := range written.FindAllStringSubmatch(body, -1) {
			known[flag[1]], known[flag[2]] = true, true
		}
		p.flags[name] = known
		for at := range len(name) { // a command of commands may be on no page of its own
			if name[at] == ' ' && p.flags[name[:at]] == nil {
				p.flags[name[:at]] = map[string]bool{}
			}
		}
	}
	if len(p.flags) < 2 {
		return nil, fmt.Errorf("%s has no commands", page.Path)
	}
	return p, nil
}

// Unknown returns the commands and flags of quaymaster in a page's code that the program does
// not have.
func (p *Program) Unknown(page *Page) []Mistake {
	var unknown []Mistake
	for _, b := range page.Blocks {
		for i, line := range joined(b.Text) {
			for _, call := range called.FindAllStringSubmatch(line, -1) {
				if what := p.check(call[1]); what != "" {
					unknown = append(unknown, Mistake{page.Path, b.Line + i, what})
				}
			}
		}
	}
	return unknown
}

// joined returns lines, each with those that continue it; a line that continues
// another one is empty, so that lines keep their numbers.
func joined(text string) []string {
	lines := strings.Split(text, "\n")
	for i := len(lines) - 2; i >= 0; i-- {
		if begun, ok := strings.CutSuffix(strings.TrimRight(lines[i], " "), `\`); ok {
			lines[i], lines[i+1] = begun+" "+strings.TrimSpace(lines[i+1]), ""
		}
	}
	return lines
}

// check looks at the words behind the program's name, up to what ends the command.
func (p *Program) check(rest string) string {
	name, command, known := "", []string{}, p.flags[""]
	words := strings.Fields(rest)
	for ; len(words) > 0; words = words[1:] {
		longer := strings.Join(append(slices.Clone(command), words[0]), " ")
		if p.flags[longer] == nil {
			break
		}
		command, name, known = append(command, words[0]), longer, p.flags[longer]
	}
	if name == "" {
		if len(words) == 0 || strings.HasPrefix(words[0], "-") || !regexp.MustCompile(`^[a-z]+$`).MatchString(words[0]) || words[0] == "help" {
			return ""
		}
		return "quaymaster has no command " + words[0]
	}
	for _, word := range words {
		if strings.ContainsAny(word[:1], "|;&>#)`") {
			break
		}
		flag, _, _ := strings.Cut(strings.ReplaceAll(strings.Trim(word, "[]`).,;"), "[=", "="), "=") // --flag[=VALUE]
		if variant.MatchString(flag) && !known[flag] && flag != "--help" && !strings.HasSuffix(flag, "-...") {
			return fmt.Sprintf("quaymaster %s has no flag %s", name, flag)
		}
	}
	return ""
}
