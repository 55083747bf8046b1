package kvtest

func programCases() []testCase { return nil }
