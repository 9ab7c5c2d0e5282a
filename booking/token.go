package booking

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// TokenSource gives the bearer token for one request. It is called for each
// request, by any number of goroutines at once, so that a token that was rotated
// counts from the next request on. Its error must not hold the token.
type TokenSource func(ctx context.Context) (string, error)

// maxToken bounds a token: beyond it a server would refuse the header anyway.
const maxToken = 16 << 10

// StaticToken is a source of a token that never changes.
func StaticToken(token string) TokenSource {
	return func(context.Context) (string, error) { return token, nil }
}

// TokenFile is a source that reads a file for each request. White space around
// the token is not part of it.
func TokenFile(path string) TokenSource {
	return func(context.Context) (string, error) {
		f, err := os.Open(path)
		if err != nil {
			return "", fmt.Errorf("token file: %w", err)
		}
		defer f.Close()
		b, err := io.ReadAll(io.LimitReader(f, maxToken+1))
		if err != nil {
			return "", fmt.Errorf("token file: %w", err)
		}
		token := strings.TrimSpace(string(b))
		if token == "" {
			return "", fmt.Errorf("token file %s is empty: write the bearer token of the booking API into it", path)
		}
		if err := checkToken(token); err != nil {
			return "", fmt.Errorf("token file %s: %w", path, err)
		}
		return token, nil
	}
}

var (
	errEmptyToken = errors.New("the token is empty")
	errBadToken   = errors.New("the token has characters that no header can carry, or is too long: want up to 16384 visible ASCII characters")
)

// checkToken keeps a token out of net/http's own error messages.
func checkToken(token string) error {
	if token == "" {
		return errEmptyToken
	}
	if len(token) > maxToken {
		return errBadToken
	}
	for _, c := range []byte(token) {
		if c <= ' ' || c > '~' {
			return errBadToken
		}
	}
	return nil
}
