package cost

import (
	"regexp"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
)

// PatternLiterals refuses literal regular expressions that do not compile, or are too large, when an expression is
// checked. It takes the place of cel.ValidateRegexLiterals, which compiles them whatever their size.
func PatternLiterals() celgo.ASTValidator { return patternLiterals{} }

type patternLiterals struct{}

// Name implements cel.ASTValidator.
func (patternLiterals) Name() string { return "cel.validator.patterns" }

// Validate implements cel.ASTValidator.
func (patternLiterals) Validate(_ *celgo.Env, _ celgo.ValidatorConfig, a *ast.AST, issues *celgo.Issues) {
	for _, name := range []string{overloads.Matches, findName, findAllName} {
		for _, call := range ast.MatchDescendants(ast.NavigateAST(a), ast.FunctionMatcher(name)) {
			arguments := call.AsCall().Args()
			if !call.AsCall().IsMemberFunction() && len(arguments) > 0 {
				arguments = arguments[1:] // the text
			}
			if len(arguments) == 0 || arguments[0].Kind() != ast.LiteralKind {
				continue
			}
			text, ok := arguments[0].AsLiteral().(types.String)
			if !ok {
				continue
			}
			err := checkPattern(string(text))
			if err == nil && name == overloads.Matches { // the others are compiled with the program
				_, err = regexp.Compile(string(text))
			}
			if err != nil {
				issues.ReportErrorAtID(arguments[0].ID(), "invalid %s argument: %v", name, err)
			}
		}
	}
}
