-- For wrk: sends the lines of a file as request bodies, or with GET if they are paths, in random order.
--
--   wrk … -s wrk_requests.lua URL -- PATH FILE SEED
--
-- If the file is empty it sends GET. At the end it prints the numbers of answered and failed requests.

local requests = {}

function init(args)
    wrk.headers["Content-Type"] = "application/json"
    for body in io.lines(args[2]) do
        local is_path = body:sub(1, 1) == "/"
        requests[#requests + 1] = is_path and wrk.format("GET", body) or wrk.format("POST", args[1], nil, body)
    end
    if #requests == 0 then
        requests[1] = wrk.format("GET", args[1])
    end
    math.randomseed(tonumber(args[3]))
end

function request()
    return requests[math.random(#requests)]
end

function done(summary, latency, errors)
    local e = summary.errors
    io.write(string.format("answered %d failed %d seconds %f\n", summary.requests,
        e.status + e.connect + e.read + e.write + e.timeout, summary.duration / 1e6))
end
