module client

go 1.23

require github.com/GIT_USER_ID/GIT_REPO_ID/openapi v0.0.0

replace (
	github.com/GIT_USER_ID/GIT_REPO_ID/openapi => ./node_client
	gopkg.in/validator.v2 => ./validator
)

require gopkg.in/validator.v2 v2.0.1 // indirect
