package markdown

const (
	// maxRows bounds the rows of the table, and maxDetails the failures with details below it, to
	// keep the page readable.
	maxRows    = 400
	maxDetails = 100
	// maxTable and maxPage bound the same in bytes: GitHub refuses a step summary of
	// more than 1 MiB as a whole.
	maxTable, maxPage = 384 << 10, 896 << 10
	// maxAnnotations bounds the commands of one run. GitHub shows ten errors and ten
	// warnings of a step, fifty annotations of a job.
	maxAnnotations = 50
	// maxCell bounds a name in a table, and maxLine a line of details, in characters.
	maxCell, maxLine = 200, 500
)
