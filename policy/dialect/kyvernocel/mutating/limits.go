package mutating

// maxChosen bounds the targets that an expression chooses: each is read apart.
const maxChosen = 1000
