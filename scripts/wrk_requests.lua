-- For wrk: sends the lines of a file as request bodies, in random order.
--
--   wrk … -s wrk_requests.lua URL -- PATH FILE SEED
--
-- If the file is empty it sends GET. At the end it prints the numbers of answered and failed requests.

local requests = {}

function init(args)
    wrk.headers["Content-Type"] = "application/json"
    for body in io.lines(args[2]) do
        requests[#requests + 1] = wrk.format("POST", args[1], nil, body)
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
