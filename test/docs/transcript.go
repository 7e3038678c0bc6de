package docs

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// Command is what stands after "$ ", and below it.
type Command struct {
	// Line of the file on which it begins.
	Line int
	Text string
	// Output as the page shows it; empty if it shows none.
	Output []string
	// Status with which it must exit: that of a comment at its end, as in "false # exit
	// status 1", or that of "echo $?" behind it, else 0.
	Status int
}

// heredoc begins lines that belong to a command.
var heredoc = regexp.MustCompile(`<<-?\s*['"]?(\w+)['"]?`)

// status ends a command that is to fail.
var status = regexp.MustCompile(`\s# exit status (\d+)$`)

// Commands reads a console block.
func Commands(b Block) ([]Command, error) {
	var commands []Command
	lines := strings.Split(strings.TrimRight(b.Text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		begun, isCommand := strings.CutPrefix(lines[i], "$ ")
		if !isCommand {
			if len(commands) == 0 {
				return nil, fmt.Errorf("line %d: output without a command", b.Line+i)
			}
			last := &commands[len(commands)-1]
			last.Output = append(last.Output, strings.TrimRight(lines[i], " "))
			continue
		}
		c := Command{Line: b.Line + i, Text: begun}
		end := i
		for ; unfinished(lines[i]) || quoted(c.Text); i++ {
			if i+1 == len(lines) {
				return nil, fmt.Errorf("line %d: the command does not end", c.Line)
			}
			c.Text += "\n" + lines[i+1]
		}
		for _, word := range heredoc.FindAllStringSubmatch(strings.Join(lines[end:i+1], "\n"), -1) {
			for closed := false; !closed; {
				i++
				if i == len(lines) {
					return nil, fmt.Errorf("line %d: no line %q ends the command's input", c.Line, word[1])
				}
				c.Text += "\n" + lines[i]
				closed = strings.TrimSpace(lines[i]) == word[1]
			}
		}
		commands = append(commands, c)
	}
	for i := range commands {
		if err := commands[i].expect(commands[i+1:]); err != nil {
			return nil, err
		}
	}
	return commands, nil
}

// expect reads the page's status of a command.
func (c *Command) expect(next []Command) error {
	said := status.FindStringSubmatch(c.Text)
	if said == nil && len(next) > 0 && next[0].Text == "echo $?" && len(next[0].Output) > 0 {
		said = []string{"", next[0].Output[0]}
	}
	if said == nil {
		return nil
	}
	var err error
	c.Status, err = strconv.Atoi(said[1])
	if err != nil {
		return fmt.Errorf("line %d: the exit status %q: %w", c.Line, said[1], err)
	}
	return nil
}

// unfinished reports whether a command continues on the next line.
func unfinished(line string) bool {
	line = strings.TrimRight(line, " ")
	return strings.HasSuffix(line, `\`) || strings.HasSuffix(line, "|") || strings.HasSuffix(line, "&&")
}

// quoted reports whether a text ends within quotes, as bash reads it.
func quoted(text string) bool {
	var in, before rune
	escaped, comment := false, false
	for _, r := range text {
		switch {
		case comment:
			comment = r != '\n'
		case escaped:
			escaped = false
		case r == '\\' && in != '\'':
			escaped = true
		case in != 0:
			if r == in {
				in = 0
			}
		case r == '\'' || r == '"':
			in = r
		case r == '#' && (before == ' ' || before == 0):
			comment = true
		}
		before = r
	}
	return in != 0
}

const elision = "..."

// Prints reports whether got is the output on the page. Empty lines at the end of either, and
// spaces at the end of lines, do not count.
func (c Command) Prints(got string) bool {
	if len(c.Output) == 0 {
		return true
	}
	var pattern strings.Builder
	pattern.WriteString("^")
	for _, line := range trimmed(c.Output) {
		if line == elision {
			pattern.WriteString(`(?:[^\n]*\n)*`)
			continue
		}
		for i, part := range strings.Split(strings.ReplaceAll(line, "…", elision), elision) {
			if i > 0 {
				pattern.WriteString(`[^\n]*`)
			}
			pattern.WriteString(regexp.QuoteMeta(part))
		}
		pattern.WriteString(`\n`)
	}
	pattern.WriteString("$")
	printed := strings.Join(trimmed(strings.Split(got, "\n")), "\n")
	if printed != "" {
		printed += "\n"
	}
	return regexp.MustCompile(pattern.String()).MatchString(printed)
}

// trimmed returns lines without spaces at their ends, and without empty ones at the end.
func trimmed(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = strings.TrimRightFunc(line, unicode.IsSpace)
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// Commands of the blocks of a page that are run with it, in their order.
func (p *Page) Commands() ([]Command, error) {
	return p.commands(func(b Block) bool { return b.RunBy == "" && b.NotRun == "" })
}

// CommandsOf returns those of the blocks that say that a test runs them.
func (p *Page) CommandsOf(test string) ([]Command, error) {
	return p.commands(func(b Block) bool { return b.RunBy == test })
}

func (p *Page) commands(wanted func(Block) bool) ([]Command, error) {
	var all []Command
	for _, b := range p.Blocks {
		if b.Language != "console" || !wanted(b) {
			continue
		}
		commands, err := Commands(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Path, err)
		}
		all = append(all, commands...)
	}
	return all, nil
}
