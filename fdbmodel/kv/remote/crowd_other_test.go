//go:build !unix

package remote

import "errors"

const crowdSocket = "FUTURA_TEST_CROWD_SOCKET"

func crowdChild(string) error { return errors.ErrUnsupported }
