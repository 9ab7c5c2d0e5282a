package main

import (
	"encoding/pem"
	"io"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// roots leaves out those that are trusted under a condition only, which PEM cannot say.
func roots(out io.Writer) error {
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return err
		}
	}
	return nil
}
