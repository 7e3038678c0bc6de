module github.com/quaymaster/quaymaster/test

go 1.26

require github.com/quaymaster/quaymaster v0.0.0

require (
	golang.org/x/crypto v0.54.0 // indirect
	golang.org/x/mod v0.39.0 // indirect
)

replace github.com/quaymaster/quaymaster => ../
